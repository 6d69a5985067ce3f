import {
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  GraphQLError,
  isValueNode,
  Kind,
  MaxIntrospectionDepthRule,
  type ValidationContext,
  type ValueNode,
  type validate,
  visit,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { createUseReader, inputFieldOf, readRequirements } from '../graph/bindings.ts';
import { findConstraintError, type InputValue } from '../graph/constraints.ts';
import { type FieldErrors, statusByCode } from '../kernel/fault.ts';
import { findConditionalRoots } from './conditionalroots.ts';
import { wholeSchemaRule } from './introspection.ts';
import { toDocumentFault, toGraphqlError } from './mask.ts';

/** Adds validation rules to those of the specification, and turns errors of literals into field errors. */
export function validateDocuments(): Plugin {
  return {
    onParse: () => setHttpStatus,
    onValidate({ addValidationRule, validateFn, setValidationFn }) {
      addValidationRule(MaxIntrospectionDepthRule);
      addValidationRule(wholeSchemaRule);
      addValidationRule(constraintRule);
      const validateBySpecification = validateFn as typeof validate;
      setValidationFn(((schema, document, ...others) => {
        const conditional = findConditionalRoots(document);
        const errors = conditional.length > 0 ? conditional : validateBySpecification(schema, document, ...others);
        return errors.length > 0 ? gatherFieldErrors(document, errors) : errors;
      }) satisfies typeof validate);
    },
  };
}

/** A syntax error is answered with 400, except with the older media type. */
function setHttpStatus({ result }: { result: unknown }): void {
  if (result instanceof GraphQLError) result.extensions.http ??= { status: statusByCode.invalid_request, spec: true };
}

/**
 * Checks literals and defaults of variables against the constraints of their fields. (Values of variables are checked before execution,
 * and so is a default of null, as a request may have another value; and what a literal requires of a variable, or a variable of a
 * literal.)
 */
function constraintRule(context: ValidationContext): ASTVisitor {
  const readUses = createUseReader(context.getSchema(), context.getDocument());
  const check = (inputValues: readonly InputValue[], node: ValueNode) => {
    const problem = findConstraintError(inputValues, literalOf(node));
    if (problem) context.reportError(new GraphQLError(problem, { nodes: node, extensions: { code: 'validation_failed' } }));
  };
  return {
    Argument(node) {
      const argument = context.getArgument();
      if (argument) check([argument], node.value);
    },
    ObjectField(node) {
      const field = inputFieldOf(context.getParentInputType(), node.name.value);
      if (field) check([field], node.value);
    },
    ObjectValue(node) {
      for (const { variable, condition, field, message } of readRequirements(context.getInputType(), node)) {
        if (variable !== null || condition !== null) continue;
        context.reportError(new GraphQLError(message, { nodes: node, extensions: { code: 'validation_failed', field } }));
      }
    },
    OperationDefinition(operation) {
      const defaults = (operation.variableDefinitions ?? []).filter(({ defaultValue }) => defaultValue && defaultValue.kind !== Kind.NULL);
      if (defaults.length === 0) return;
      const { inputValues } = readUses(operation);
      for (const { variable, defaultValue } of defaults) if (defaultValue) check(inputValues.get(variable.name.value) ?? [], defaultValue);
    },
  };
}

/** The value of a literal, as far as constraints need it. */
function literalOf(node: ValueNode): unknown {
  switch (node.kind) {
    case Kind.INT:
      return Number(node.value);
    case Kind.STRING:
      return node.value;
    case Kind.LIST:
      return node.values;
    case Kind.NULL:
      return null;
    default:
      return undefined;
  }
}

/** The field errors of the literals of documents without other errors; answered, like those of variables, when an operation is run. */
export const literalErrorsByDocument = new WeakMap<DocumentNode, FieldErrors>();

/**
 * Literals that a scalar or a field rejects are field errors, like variables, named by their field or argument. They do not make
 * a document invalid, but its operations are not run. Returns the errors that make it invalid.
 */
function gatherFieldErrors(document: DocumentNode, errors: readonly GraphQLError[]): GraphQLError[] {
  const others = errors.filter((error) => error.extensions.code !== 'validation_failed');
  if (others.length > 0) return others.map((error) => toGraphqlError(toDocumentFault(error), error.nodes));
  const errorOf = new Map<unknown, GraphQLError>();
  for (const error of errors) if (!errorOf.has(error.nodes?.[0])) errorOf.set(error.nodes?.[0], error);
  const fields: Record<string, string[]> = Object.create(null);
  const names: string[] = [];
  /** The positions of the current value in its lists, from 1, outermost first. */
  const itemNumbers: number[] = [];
  visit(document, {
    enter(node, key, parent) {
      const name = nameOf(node);
      if (name !== null) names.push(name);
      if (isItem(node, parent)) itemNumbers.push(Number(key) + 1);
      const error = errorOf.get(node);
      if (!error) return;
      const item = itemNumbers.length > 0 ? `Item ${itemNumbers[0]}: ` : '';
      const { field: absent } = error.extensions;
      const way = typeof absent === 'string' ? [...names, absent] : names;
      // A field of an input object is named without the argument.
      const field = (way.length > 1 ? way.slice(1) : way).join('.') || 'input';
      const messages = (fields[field] ??= []);
      if (!messages.includes(item + error.message)) messages.push(item + error.message);
    },
    leave(node, _key, parent) {
      if (nameOf(node) !== null) names.pop();
      if (isItem(node, parent)) itemNumbers.pop();
    },
  });
  literalErrorsByDocument.set(document, fields);
  return [];
}

/** Whether a node is a value in a literal list. */
function isItem(node: ASTNode, parent: unknown): boolean {
  return Array.isArray(parent) && isValueNode(node);
}

function nameOf(node: ASTNode): string | null {
  if (node.kind === Kind.ARGUMENT || node.kind === Kind.OBJECT_FIELD) return node.name.value;
  return node.kind === Kind.VARIABLE_DEFINITION ? node.variable.name.value : null;
}
