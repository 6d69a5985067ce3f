import { CopyButton } from '../../parts/copy.tsx';

/** An example, with what copies it as it is shown. */
export function Code({ text }: { text: string }) {
  return (
    <div className="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what is wider than the page is scrolled, with the keyboard too. */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label="Copy this example" />
    </div>
  );
}
