import { Component, type ReactNode } from 'react';

/** What is shown in place of a page that has thrown while it was rendered. */
export class Boundary extends Component<{ readonly children: ReactNode }, { readonly hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    if (!this.state.hasFailed) return this.props.children;
    return (
      <main>
        <div className="state problem" role="alert">
          <h1>This page has failed</h1>
          <p>The fault is in the page, not in your project: nothing that is saved has changed.</p>
          <button type="button" className="button" onClick={() => location.reload()}>
            Load the page again
          </button>{' '}
          <a href="/">To the overview</a>
        </div>
      </main>
    );
  }
}
