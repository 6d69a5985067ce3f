const STORAGE_KEY = 'portico:project';

/** The id of the project that was last open in this tab. It is not a secret. */
export const recallProject = () => sessionStorage.getItem(STORAGE_KEY);
export const rememberProject = (id: string | null) =>
  id ? sessionStorage.setItem(STORAGE_KEY, id) : sessionStorage.removeItem(STORAGE_KEY);
