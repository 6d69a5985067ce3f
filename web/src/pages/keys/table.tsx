import { Time } from '../../parts/time.tsx';
import type { ApiKey } from './list.ts';

interface KeyTableProps {
  readonly label: string;
  readonly keys: readonly ApiKey[];
  /** Absent for keys that are no longer valid. */
  onRevoke?(key: ApiKey): void;
}

/** Keys are few, so the table is not virtualized. */
export function KeyTable({ label, keys, onRevoke }: KeyTableProps) {
  return (
    <table className="key-table" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col" className="minor">
            Begins with
          </th>
          <th scope="col" className="minor">
            Made
          </th>
          <th scope="col">Last use</th>
          <th scope="col">{onRevoke ? 'Ends' : 'Is over'}</th>
          {onRevoke && (
            <th scope="col">
              <span className="hidden">Revoke</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <Row key={key.id} apiKey={key} onRevoke={onRevoke} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ apiKey, onRevoke }: { apiKey: ApiKey; onRevoke?(key: ApiKey): void }) {
  const { name, hint, created, lastUsed, expires, revoked } = apiKey;
  return (
    <tr>
      <th scope="row">
        <bdi>{name}</bdi>
      </th>
      <td className="minor">
        <code>{hint}</code>
      </td>
      <td className="minor">
        <Time value={created} />
      </td>
      <td>{lastUsed ? <Time value={lastUsed} /> : 'never'}</td>
      <td>
        {revoked && 'revoked '}
        {revoked || expires ? <Time value={revoked ?? expires ?? ''} /> : 'never'}
      </td>
      {onRevoke && (
        <td className="end">
          <button type="button" className="button danger small" aria-label={`Revoke ${name}`} onClick={() => onRevoke(apiKey)}>
            Revoke
          </button>
        </td>
      )}
    </tr>
  );
}
