import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLObjectType,
  getNamedType,
  getNullableType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schema } from '../../src/schema.ts';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

type Input = GraphQLArgument | GraphQLInputField;

/** A place in which a value may stand: a field of the schema, and the way to the argument or input field. */
interface Place {
  readonly operation: 'query' | 'mutation' | 'subscription';
  readonly field: GraphQLField<unknown, unknown>;
  readonly isInProject: boolean;
  /** From the argument on. */
  readonly way: readonly Input[];
}

function findPlaces(): Place[] {
  const roots = { query: schema.getQueryType(), mutation: schema.getMutationType(), subscription: schema.getSubscriptionType() };
  const below = (inputs: readonly Input[], way: readonly Input[]): Array<readonly Input[]> =>
    inputs.flatMap((input) => {
      const type = getNamedType(input.type);
      return isInputObjectType(type) ? below(Object.values(type.getFields()), [...way, input]) : [[...way, input]];
    });
  const of = (type: GraphQLObjectType | null | undefined, operation: Place['operation'], isInProject: boolean) =>
    Object.values(type?.getFields() ?? {}).flatMap((field) => below(field.args, []).map((way) => ({ operation, field, isInProject, way })));
  const project = schema.getType('Project');
  return [
    ...Object.entries(roots).flatMap(([operation, type]) => of(type, operation as Place['operation'], false)),
    ...of(isObjectType(project) ? project : null, 'query', true),
  ];
}

const scalarProblems: Readonly<Record<string, ReadonlyArray<readonly [unknown, string]>>> = {
  Name: [
    ['', 'This field may not be blank.'],
    [' ', 'This field may not be blank.'],
  ],
  Text: [
    ['a\0', 'Null characters are not allowed.'],
    ['\ufeffa', 'A byte order mark at the beginning is not allowed.'],
  ],
  JSON: [['a\0', 'Null characters are not allowed.']],
  JSONObject: [[['x'], 'Must be a JSON object.']],
  UUID: [['x', 'Must be a valid UUID.']],
  DateTime: [['today', 'Not a valid date-time: use ISO 8601 with a time zone.']],
};

/** An item that a list takes: of an enum one of its values. */
function itemOf(input: Input): unknown {
  const type = getNamedType(input.type);
  return isEnumType(type) ? type.getValues()[0]?.value : app.demo.project_id;
}

/** Values that the last of a way refuses, with what it says of each. */
function problemsOf(input: Input): ReadonlyArray<readonly [unknown, string]> {
  const { maxItems, maxLength, minimum, rejectsNull } = input.extensions as Record<string, number | undefined>;
  const bare = getNullableType(input.type);
  const scalar = isListType(bare) ? [] : (scalarProblems[getNamedType(bare).name] ?? []);
  const items = isListType(bare) ? (scalarProblems[getNamedType(bare).name] ?? []) : [];
  return [
    ...scalar,
    ...items.map(([value, message]) => [[value], `Item 1: ${message}`] as const),
    ...(minimum === undefined ? [] : [[minimum - 1, `Ensure this value is greater than or equal to ${minimum}.`] as const]),
    ...(maxLength === undefined
      ? []
      : [['x'.repeat(maxLength + 1), `Ensure this field has no more than ${maxLength} characters.`] as const]),
    ...(maxItems === undefined
      ? []
      : [[Array(maxItems + 1).fill(itemOf(input)), `Ensure this field has no more than ${maxItems} items.`] as const]),
    ...(rejectsNull ? [[null, 'This field may not be null.'] as const] : []),
  ];
}

/** Something that fits a type: for what else must be given. */
function fitting(input: Input): string {
  const ids: Record<string, string> = { organizationId: app.demo.organization_id, projectId: app.demo.project_id };
  const type = getNamedType(input.type);
  if (type.name === 'ID') return JSON.stringify(ids[input.name] ?? app.demo.dashboards.public);
  // The last one: the target `console` of a ticket requires an instance.
  if (isEnumType(type)) return String(type.getValues().at(-1)?.name);
  return { Name: '"x"', Text: '"x"', DateTime: '"2099-01-01T00:00:00Z"', Int: '1', Boolean: 'true' }[type.name] ?? '"x"';
}

const isRequired = (input: Input) => isRequiredArgument(input as GraphQLArgument) || isRequiredInputField(input as GraphQLInputField);

/** The arguments of a field: what is required, and a value at the end of the way. */
function argumentsOf(inputs: readonly Input[], way: readonly Input[], value: string): string {
  const [next, ...rest] = way;
  return inputs
    .flatMap((input) => {
      if (input !== next) return isRequired(input) ? [`${input.name}: ${fitting(input)}`] : [];
      const type = getNamedType(input.type);
      if (rest.length === 0 || !isInputObjectType(type)) return [`${input.name}: ${value}`];
      return [`${input.name}: {${argumentsOf(Object.values(type.getFields()), rest, value)}}`];
    })
    .join(', ');
}

function selectionOf(type: unknown): string {
  return isCompositeType(getNamedType(type as GraphQLInputType)) ? '{ __typename }' : '';
}

function write({ operation, field, isInProject, way }: Place, variable: string, value: string): string {
  const text = `${field.name}(${argumentsOf(field.args, way, value)}) ${selectionOf(field.type)}`;
  const { organization_id, project_id } = app.demo;
  const inside = isInProject ? `project(organizationId: "${organization_id}", id: "${project_id}") { ${text} }` : text;
  return `${operation} ${variable} { ${inside} }`;
}

describe('a constraint is checked at every place of a value', () => {
  const places = findPlaces();

  it('for every input that has one', async () => {
    let count = 0;
    for (const place of places) {
      const input = place.way.at(-1) as Input;
      for (const [value, message] of problemsOf(input)) {
        const text = JSON.stringify(value).replaceAll('\ufeff', '\\ufeff');
        const literal = isEnumType(getNamedType(input.type)) ? text.replaceAll('"', '') : text;
        const { name } = input;
        const type = String(input.type);
        const where = `${place.field.name} ${place.way.map((part) => part.name).join('.')}: ${literal.slice(0, 50)}`;
        const ask = async (query: string, variables?: Record<string, unknown>) => {
          const headers = place.operation === 'subscription' ? { accept: 'text/event-stream' } : {};
          const response = await app.graphql(query, variables, { headers });
          const [, event = ''] = /^data: (.*)$/m.exec(response.text) ?? [];
          const json = response.json ?? JSON.parse(event);
          return { fields: json.errors?.[0]?.extensions.fields, data: json.data };
        };
        const refusedAs = (field: string) => ({ fields: { [field]: [message] }, data: undefined });
        const refused = refusedAs(name);
        // A literal is named by its way below the argument.
        const way = place.way.slice(place.way.length > 1 ? 1 : 0).map((part) => part.name);
        const nullable = getNullableType(input.type);
        expect(await ask(write(place, `($${name}: ${type})`, `$${name}`), { [name]: value }), `${where}, as a variable`).toEqual(refused);
        expect(await ask(write(place, '', literal)), `${where}, as a literal`).toEqual(refusedAs(way.join('.')));
        const declared = value === null ? String(nullable) : type;
        expect(await ask(write(place, `($${name}: ${declared} = ${literal})`, `$${name}`)), `${where}, as a default`).toEqual(refused);
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(35);
  });

  it('for each of several places of a variable', async () => {
    const { organization_id: o, project_id: p } = app.demo;
    const query = `query ($n: Int!) { project(organizationId: "${o}", id: "${p}") {
      a: dashboardPage(page: $n) { page } dashboards(first: $n) { nodes { id } } } }`;
    const { json } = await app.graphql(query, { n: 0 });
    expect(json.errors[0].extensions.fields).toEqual({ n: ['Ensure this value is greater than or equal to 1.'] });
  });

  it('for the executed operation, and no other of the document', async () => {
    const { organization_id: o, project_id: p } = app.demo;
    const query = `
      query A($n: Int!) { project(organizationId: "${o}", id: "${p}") { dashboards(first: $n) { nodes { id } } } }
      query B($n: Int!) { project(organizationId: "${o}", id: "${p}") { dashboardPage(page: $n) { page } } }`;
    const { json } = await app.ask('POST', '/graphql', { body: { query, operationName: 'A', variables: { n: 0 } } });
    expect(json).toEqual({ data: { project: { dashboards: { nodes: [] } } } });
  });

  it('and has its bound in the description of the input', () => {
    for (const { way } of places) {
      const input = way.at(-1) as Input;
      const { maxItems, maxLength } = input.extensions as { maxItems?: number; maxLength?: number };
      const bound = maxItems ?? maxLength;
      if (bound !== undefined) expect(input.description, input.name).toContain(String(bound));
      const { name } = getNamedType(input.type);
      if (name === 'Name' || name === 'Text') expect(maxLength, input.name).toBeGreaterThan(0);
    }
  });
});
