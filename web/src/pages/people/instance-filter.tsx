import { useQuery } from '@apollo/client/react';
import { Combobox, ComboboxItem, ComboboxPopover, ComboboxProvider } from '@ariakit/react';
import { useDeferredValue, useState } from 'react';
import { graphql } from '../../graphql/graphql.ts';
import { withholdComposition } from '../../parts/composition.ts';
import { shortenId } from '../../parts/format.ts';

const InstancesByNameQuery = graphql(`
  query InstancesByName($id: ID!, $text: Text!) {
    project(id: $id) {
      id
      instances(first: 8, filter: { namePrefix: $text }, orderBy: { field: name }) {
        nodes {
          id
          name
        }
      }
    }
  }
`);

interface InstanceFilterProps {
  readonly projectId: string;
  readonly value: string | null;
  /** The name of the chosen instance, if known. */
  readonly name: string | null;
  onChange(id: string | null): void;
}

/** Chooses an instance by name prefix; the chosen one is a chip, which clears the filter. */
export function InstanceFilter({ projectId, value, name, onChange }: InstanceFilterProps) {
  const [text, setText] = useState('');
  const prefix = useDeferredValue(text.trim());
  const { data } = useQuery(InstancesByNameQuery, { variables: { id: projectId, text: prefix }, skip: !prefix });
  if (value) {
    return (
      <button type="button" className="chip" aria-pressed="true" onClick={() => onChange(null)}>
        Instance <bdi>{name ?? shortenId(value)}</bdi> <span aria-hidden="true">×</span>
      </button>
    );
  }
  const found = (prefix && data?.project?.instances.nodes) || [];
  return (
    <ComboboxProvider value={text} setValue={setText}>
      <Combobox
        className="input session-filter"
        placeholder="Instance"
        aria-label="Instance"
        autoSelect
        onKeyDownCapture={withholdComposition}
      />
      {prefix !== '' && (
        <ComboboxPopover className="sheet" gutter={4} portal aria-label="Instances">
          {found.map(({ id, name: title }) => (
            <ComboboxItem
              key={id}
              className="sheet-item"
              setValueOnClick={false}
              onClick={() => {
                setText('');
                onChange(id);
              }}
            >
              <bdi>{title}</bdi>
            </ComboboxItem>
          ))}
          {data && found.length === 0 && <p className="sheet-head">No instance’s name begins so.</p>}
        </ComboboxPopover>
      )}
    </ComboboxProvider>
  );
}
