import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import './style/tokens.css';
import './style/page.css';
import './style/parts.css';

const withoutStorage = (
  <main>
    <div className="state problem" role="alert">
      <h1>This browser lets the desk store nothing</h1>
      <p>Your session is stored in this tab alone, and your settings in this browser: allow both for this site, and load the page again.</p>
    </div>
  </main>
);

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(<StrictMode>{hasStorage() ? <App /> : withoutStorage}</StrictMode>);
}

/** A browser that blocks the cookies of a site lets it store nothing else either. */
function hasStorage(): boolean {
  try {
    return Boolean(localStorage && sessionStorage);
  } catch {
    return false;
  }
}
