import { type DocumentNode, type GraphQLSchema, getOperationAST, OperationTypeNode } from 'graphql';
import { compileOperation, type Operation, walkOperation } from '../../graph/compile.ts';
import { keepByText } from '../kept.ts';
import { describeOperation } from './operation.ts';

/** A document that is asked for so often is worth compiling: that takes as long as walking it some fifty times. */
const USES_BEFORE_COMPILING = 3;

/** One operation of a valid document: a query or a mutation. */
export interface KnownOperation {
  readonly document: DocumentNode;
  /** As the log and the metrics have it. */
  readonly label: string;
  readonly run: Operation;
}

interface Entry {
  readonly document: DocumentNode;
  isValid: boolean;
  readonly operations: Map<string | null, KnownOperation | null>;
}

/**
 * The documents that were parsed and found valid, which Yoga asks by their text. Those with errors are not
 * kept at all.
 */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #cache = keepByText<Entry>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  get(text: string): DocumentNode | undefined {
    return this.#cache.get(text)?.document;
  }

  set(text: string, document: DocumentNode): void {
    this.#cache.set(text, { document, isValid: false, operations: new Map() });
  }

  accept(document: DocumentNode): void {
    const entry = document.loc && this.#cache.get(document.loc.source.body);
    if (entry?.document === document) entry.isValid = true;
  }

  forget(document: DocumentNode): void {
    if (document.loc) this.#cache.delete(document.loc.source.body);
  }

  /** The operation of a document that was found valid before; null for any other, and for a subscription. */
  find(text: string, operationName: string | null): KnownOperation | null {
    const entry = this.#cache.get(text);
    if (!entry?.isValid) return null;
    // A name that the document does not have is not kept: a client may send ever new ones.
    const known = entry.operations.get(operationName) ?? this.#open(entry.document, operationName);
    if (known) entry.operations.set(operationName, known);
    return known;
  }

  #open(document: DocumentNode, operationName: string | null): KnownOperation | null {
    const operation = getOperationAST(document, operationName);
    if (!operation || operation.operation === OperationTypeNode.SUBSCRIPTION) return null;
    const schema = this.#schema;
    let uses = 0;
    let run = walkOperation(schema, document, operationName);
    return {
      document,
      label: describeOperation(document, operationName),
      run(contextValue, variableValues) {
        uses += 1;
        if (uses === USES_BEFORE_COMPILING) run = compileOperation(schema, document, operationName);
        return run(contextValue, variableValues);
      },
    };
  }
}

/** A text that cannot be parsed is tried again: the parser gives up at its first error. */
export const noErrors = { get: () => undefined, set: () => {} };
