import { toPage } from '../../parts/address.ts';

export const toInstance = (projectId: string, id: string, tab?: string, search?: Readonly<Record<string, string>>) =>
  toPage(projectId, `instances/${id}${tab ? `/${tab}` : ''}`, search);
