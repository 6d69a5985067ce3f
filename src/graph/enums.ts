/** The values of an enum, which are spelled on the wire as in the schema, each with what it means. */
export function describeValues<Name extends string>(descriptions: Readonly<Record<Name, string>>) {
  const values = Object.entries<string>(descriptions).map(([name, description]) => [name, { value: name, description }]);
  return Object.fromEntries(values) as { [Each in Name]: { value: Each; description: string } };
}
