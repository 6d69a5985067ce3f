/** The values of an enum, from their descriptions. On the wire they are spelled as in the schema. */
export function describeValues<Name extends string>(descriptions: Readonly<Record<Name, string>>) {
  const values = Object.entries<string>(descriptions).map(([name, description]) => [name, { value: name, description }]);
  return Object.fromEntries(values) as { [Each in Name]: { value: Each; description: string } };
}
