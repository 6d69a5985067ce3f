import { useCallback, useMemo } from 'react';
import { useSearchParams } from 'wouter';

/** Page state in the URL's query string: it can be linked to, and the back button works. */
export function useAddress(): {
  get(name: string): string | null;
  all(name: string): string[];
  /** Null and an empty list remove a name. */
  set(changes: Readonly<Record<string, string | readonly string[] | null>>, options?: { readonly replace?: boolean }): void;
} {
  const [search, setSearch] = useSearchParams();
  const set = useCallback(
    (changes: Readonly<Record<string, string | readonly string[] | null>>, options: { readonly replace?: boolean } = {}) => {
      setSearch(() => {
        // Not the parameters of the last render: others may have changed theirs since.
        const next = new URLSearchParams(location.search);
        for (const [name, value] of Object.entries(changes)) {
          next.delete(name);
          for (const one of value === null ? [] : [value].flat()) next.append(name, one);
        }
        return next;
      }, options);
    },
    [setSearch],
  );
  return useMemo(() => ({ get: (name) => search.get(name), all: (name) => search.getAll(name), set }), [search, set]);
}

/** The addresses of the pages. */
export const toProject = (projectId: string) => `/projects/${projectId}`;
export const toPage = (projectId: string, page: string, search: Readonly<Record<string, string>> = {}) => {
  const text = new URLSearchParams(search).toString();
  return `${toProject(projectId)}/${page}${text && `?${text}`}`;
};

/** Whether a text is a UUID, as every id is. */
export const isUuid = (text: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
