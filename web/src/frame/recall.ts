const NAME = 'portico:project';

/** The project that was open last in this tab: an id, which is no secret. */
export const recallProject = () => sessionStorage.getItem(NAME);
export const rememberProject = (id: string | null) => (id ? sessionStorage.setItem(NAME, id) : sessionStorage.removeItem(NAME));
