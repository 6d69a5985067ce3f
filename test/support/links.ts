import { getNamedType, isCompositeType, parse, print, TypeInfo, visit, visitWithTypeInfo } from 'graphql';
import { schema } from '../../src/schema.ts';
import type { Operation } from './operations.ts';

/** An operation that selects of the items of a list only what is in them. */
export function withoutLinks(operation: Operation): Operation {
  const info = new TypeInfo(schema);
  let inItems = 0;
  const isList = (name: string) => name === 'nodes' || name === 'results';
  const Field = {
    enter({ name }: { name: { value: string } }) {
      if (inItems > 0 && isCompositeType(getNamedType(info.getType()))) return null;
      if (isList(name.value)) inItems += 1;
      return undefined;
    },
    leave({ name }: { name: { value: string } }) {
      if (isList(name.value)) inItems -= 1;
    },
  };
  return { ...operation, document: print(visit(parse(operation.document), visitWithTypeInfo(info, { Field }))) };
}
