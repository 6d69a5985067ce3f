import { Component, type ReactNode } from 'react';

interface BoundaryProps {
  /** The address of what is shown: another one is tried anew. */
  readonly path: string;
  /** Wraps the message. */
  frame?(problem: ReactNode): ReactNode;
  readonly children: ReactNode;
}

/** Shows that a page has failed in place of one that has thrown while it was rendered. */
export class Boundary extends Component<BoundaryProps, { readonly hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override componentDidUpdate(before: BoundaryProps): void {
    if (this.state.hasFailed && before.path !== this.props.path) this.setState({ hasFailed: false });
  }

  override render(): ReactNode {
    const { children, frame = (problem: ReactNode) => problem } = this.props;
    if (!this.state.hasFailed) return children;
    return frame(
      <div className="state problem" role="alert">
        <h1>This page has failed</h1>
        <p>The fault is in the page, not in your project: nothing that is saved has changed.</p>
        <button type="button" className="button" onClick={() => location.reload()}>
          Load the page again
        </button>{' '}
        <a href="/">To the overview</a>
      </div>,
    );
  }
}
