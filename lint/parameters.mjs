/** The PostgreSQL types that are valid for each kind of parameter; enums are also valid for a string. */
const accepted = {
  string: ['text', 'varchar', 'uuid', 'json', 'numeric'],
  number: ['int2', 'int4', 'int8', 'float4', 'float8', 'numeric'],
  boolean: ['bool'],
  Date: ['timestamptz'],
  Uint8Array: ['bytea'],
};

/**
 * Has PostgreSQL describe each statement as it is sent, without parameter types, and compares the types that it infers with
 * those of TypeScript.
 */
export async function checkParameters(database, statements) {
  const types = await readTypes(database);
  const problems = [];
  for (const { file, line, text, parameters } of statements) {
    try {
      const { queryParams } = await database.describeQuery(text);
      for (const [index, { kind, source }] of parameters.entries()) {
        const { dataTypeID } = queryParams[index];
        if (!fits(types, kind, dataTypeID)) {
          const taken = types.get(dataTypeID)?.name ?? dataTypeID;
          problems.push({ file, line, message: `The parameter ${source} is a ${kind}, and PostgreSQL takes it for ${taken}: cast it.` });
        }
      }
    } catch (failure) {
      problems.push({ file, line, message: `PostgreSQL does not take the statement as it is sent: ${failure.message}` });
    }
  }
  return problems;
}

function fits(types, kind, id) {
  if (kind === 'null') return true;
  const type = types.get(id);
  if (!type) return false;
  if (kind.endsWith('[]')) return type.element !== 0 && fits(types, kind.slice(0, -2), type.element);
  return accepted[kind].includes(type.name) || (kind === 'string' && type.isEnum);
}

async function readTypes(database) {
  const { rows } = await database.query(`
    SELECT oid::int AS id, typname AS name, typtype = 'e' AS "isEnum", CASE WHEN typcategory = 'A' THEN typelem::int ELSE 0 END AS element
    FROM pg_type`);
  return new Map(rows.map((row) => [row.id, row]));
}
