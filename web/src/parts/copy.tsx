import { type ReactNode, useState } from 'react';
import { useToast } from './toast.tsx';

interface CopyButtonProps {
  readonly text: string;
  readonly label?: string;
  readonly className?: string;
  readonly children?: ReactNode;
}

/** Copies a text to the clipboard and shows a toast. */
export function CopyButton({ text, label, className, children }: CopyButtonProps) {
  const toast = useToast();
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    // `navigator.clipboard` exists only in secure contexts: TLS or localhost.
    const isDone = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    if (!isDone) return toast('This browser does not let the page copy. Select the text instead.');
    setCopied(true);
    toast('Copied.');
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" className={className ?? 'button small'} aria-label={children ? undefined : label} title={label} onClick={copy}>
      {children ?? (isCopied ? 'Copied' : 'Copy')}
    </button>
  );
}
