import { CopyButton } from './copy.tsx';
import { shortenId } from './format.ts';

/** An id, shortened in the middle; a click copies the full id. */
export function Id({ value }: { value: string }) {
  return (
    <CopyButton text={value} label={`${shortenId(value)}: copy ${value}`} className="id">
      {shortenId(value)}
    </CopyButton>
  );
}
