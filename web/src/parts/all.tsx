import type { ApolloClient } from '@apollo/client';
import { useApolloClient } from '@apollo/client/react';
import { useCallback, useEffect, useState } from 'react';
import { type Failure, toFailure } from '../graphql/link.ts';
import { useEnded } from '../session/ended.ts';
import { formatNumber } from './format.ts';
import type { Connection } from './pages.ts';

/** Where a list is read from: first what the cache has of it, then the server. */
export type Source = 'cache-only' | 'network-only';

/** A list in parts, as they are read. The function stays the same for as long as the list does. */
export type ReadParts<Item> = (apollo: ApolloClient, source: Source) => AsyncGenerator<readonly Item[]>;

export interface All<Item> {
  /** The items that have been read so far; null before the first part. */
  readonly items: readonly Item[] | null;
  readonly isReading: boolean;
  /** The list is longer than what is read of it. */
  readonly isCut: boolean;
  readonly failure: Failure | null;
  retry(): void;
}

/** How much is read of a list: each page is a request, and nobody chooses from more. */
const MAX_ITEMS = 2_000;

/** The pages of a connection, one after the other, as far as the source has them. */
export async function* readPages<Node>(
  read: (after: string | null) => Promise<Connection<Node> | null | undefined>,
): AsyncGenerator<readonly Node[]> {
  for (let after: string | null = null; ; ) {
    const page = await read(after);
    if (!page) return;
    yield page.nodes;
    if (!page.pageInfo.hasNextPage) return;
    after = page.pageInfo.endCursor;
  }
}

/** A whole list, to choose from. The items in the cache are shown at once, and those of the server replace them. */
export function useAll<Item>(readParts: ReadParts<Item>): All<Item> {
  const apollo = useApolloClient();
  const [items, setItems] = useState<readonly Item[] | null>(null);
  const [isReading, setReading] = useState(true);
  const [isCut, setCut] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [epoch, setEpoch] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each epoch reads the list again.
  useEffect(() => {
    let isLeft = false;
    /** Returns how many items were read. Fewer than are shown replace them only once they are all that there are. */
    const read = async (source: Source, shown: number): Promise<number> => {
      let all: readonly Item[] = [];
      for await (const part of readParts(apollo, source)) {
        if (isLeft) return 0;
        all = [...all, ...part];
        const isTooLong = all.length > MAX_ITEMS;
        setCut(isTooLong);
        if (isTooLong) all = all.slice(0, MAX_ITEMS);
        if (all.length >= shown) setItems(all);
        if (isTooLong) break;
      }
      if (source === 'network-only' && !isLeft) setItems(all);
      return all.length;
    };
    const readAll = async () => {
      try {
        const shown = await read('cache-only', 0);
        if (!isLeft) await read('network-only', shown);
      } catch (error) {
        if (!isLeft) setFailure(toFailure(error));
      }
      if (!isLeft) setReading(false);
    };
    setReading(true);
    setFailure(null);
    readAll();
    return () => {
      isLeft = true;
    };
  }, [apollo, readParts, epoch]);
  useEnded(failure?.code);
  const retry = useCallback(() => setEpoch((before) => before + 1), []);
  return { items, isReading, isCut, failure, retry };
}

/** The notes on such a list: that it could not be read, or is not all that there is. */
export function AllNotes<Item>({ all: { isCut, failure, retry }, name }: { all: All<Item>; name: string }) {
  return (
    <>
      {isCut && (
        <p className="sheet-head">
          These are the first {formatNumber(MAX_ITEMS)} {name}.
        </p>
      )}
      {failure && (
        <div className="sheet-head" role="alert">
          <p>
            The {name} could not be read. {failure.message}
          </p>
          <button type="button" className="button small" onClick={retry}>
            Try again
          </button>
        </div>
      )}
    </>
  );
}
