import { useEffect } from 'react';
import { useSearch } from 'wouter';
import { toPage } from './address.ts';

const addresses = new Map<string, string>();

/** Remembers the filters of a list, for the link back from one of its items. */
export function useListAddress(projectId: string, page: string): void {
  const search = useSearch();
  useEffect(() => void addresses.set(toPage(projectId, page), search), [projectId, page, search]);
}

/** The address of a list with its last filters. */
export function toLastList(projectId: string, page: string): string {
  const search = addresses.get(toPage(projectId, page));
  return toPage(projectId, page) + (search ? `?${search}` : '');
}
