import { CopyButton } from '../../parts/copy.tsx';

/** An example with a button that copies it as shown. */
export function Code({ text }: { text: string }) {
  return (
    <div className="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: an example wider than the page must scroll with the keyboard too. */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label="Copy this example" />
    </div>
  );
}
