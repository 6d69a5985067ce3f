import { relative } from 'node:path';
import ts from 'typescript';

const statements = [];

/** Returns and clears the statements collected so far. */
export function takeStatements() {
  return statements.splice(0);
}

/** An ESLint rule that collects every statement, with what TypeScript knows of its parameters. */
export const collect = {
  meta: { type: 'problem', schema: [], messages: { kind: 'A statement takes no parameter of the type {{ type }}.' } },
  create(context) {
    const { program, esTreeNodeToTSNodeMap } = context.sourceCode.parserServices;
    const checker = program.getTypeChecker();
    return {
      TaggedTemplateExpression({ tag, quasi, loc }) {
        if (!/(^|\.)(query|\$executeRaw)$/.test(context.sourceCode.getText(tag))) return;
        const parameters = quasi.expressions.map((node) => {
          const type = checker.getTypeAtLocation(esTreeNodeToTSNodeMap.get(node));
          const kind = kindOf(checker, type);
          if (!kind) context.report({ node, messageId: 'kind', data: { type: checker.typeToString(type) } });
          return { kind, source: context.sourceCode.getText(node) };
        });
        const text = quasi.quasis.map(({ value }, index) => (index === 0 ? '' : `$${index}`) + value.cooked).join('');
        // The text of such a statement is not known; the report above names the parameter.
        if (parameters.some(({ kind }) => !kind)) return;
        statements.push({ file: relative(context.cwd, context.filename), line: loc.start.line, text, parameters });
      },
    };
  },
};

/** The kind of a parameter for the driver; null if it is not a valid parameter; a list's kind ends with []. */
function kindOf(checker, type) {
  if (type.isUnion()) {
    const present = type.types.filter(({ flags }) => !(flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)));
    const kinds = new Set(present.map((one) => kindOf(checker, one)));
    return kinds.size === 1 ? [...kinds][0] : null;
  }
  if (type.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)) return 'null';
  if (type.flags & ts.TypeFlags.StringLike) return 'string';
  if (type.flags & ts.TypeFlags.NumberLike) return 'number';
  if (type.flags & ts.TypeFlags.BooleanLike) return 'boolean';
  if (checker.isArrayType(type)) {
    const element = kindOf(checker, checker.getTypeArguments(type)[0]);
    return element && `${element}[]`;
  }
  const name = type.getSymbol()?.getName();
  if (name === 'Date') return 'Date';
  return name === 'Uint8Array' || name === 'Buffer' ? 'Uint8Array' : null;
}
