/** The Content-Security-Policy of a page: `rules` extend defaults that allow only framing by this server. */
export function contentPolicy(rules: Readonly<Record<string, string>>): string {
  const defaults = { 'default-src': "'none'", 'base-uri': "'none'", 'form-action': "'none'", 'frame-ancestors': "'self'" };
  return Object.entries({ ...defaults, ...rules })
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
}

/** The favicon, as a data URL. */
export const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#0b5cad" d="M1 2h14v3H1zM3 6h3v8H3zM10 6h3v8h-3z"/></svg>',
)}`;

/** The style of the server's own pages, in light and dark colours. */
export const pageStyle = `
  :root { color-scheme: light dark; --ink: #1d2733; --paper: #fff; --link: #0b5cad; --shade: #eef2f6; --line: #c5ced8 }
  @media (prefers-color-scheme: dark) { :root { --ink: #dfe6ee; --paper: #141a21; --link: #7ab8f5; --shade: #232c37; --line: #465362 } }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1rem; color: var(--ink); background: var(--paper) }
  h1 { font-size: 2rem; line-height: 1.2; margin: 0 }
  a { color: var(--link) }
  code { background: var(--shade); padding: .1rem .3rem; border-radius: .2rem; overflow-wrap: anywhere }`;

export const pagePolicy = contentPolicy({ 'style-src': "'unsafe-inline'", 'img-src': 'data:' });
