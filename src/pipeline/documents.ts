import type { DocumentNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { createTextCache } from '../kernel/cache.ts';

/** The documents that were found valid, by their text. */
export type ValidDocuments = ReturnType<typeof createTextCache<DocumentNode>>;

/** Caches the documents that were found valid: they are neither parsed nor validated again. */
export function cacheDocuments(cache: ValidDocuments): Plugin {
  return {
    onParse({ params, setParsedDocument }) {
      const known = cache.get(String(params.source));
      if (known) setParsedDocument(known);
    },
    onValidate({ params, setResult }) {
      const document: DocumentNode = params.documentAST;
      const text = document.loc?.source.body;
      if (text === undefined) return;
      if (cache.get(text) === document) return setResult([]);
      return ({ valid }) => {
        if (valid) cache.set(text, document);
      };
    },
  };
}
