import { useQuery } from '@apollo/client/react';
import {
  Combobox,
  ComboboxItem,
  ComboboxList,
  ComboboxProvider,
  Popover,
  PopoverDisclosure,
  PopoverProvider,
  useComboboxStore,
} from '@ariakit/react';
import { type KeyboardEvent, useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { graphql } from '../graphql/graphql.ts';
import { toFailure } from '../graphql/link.ts';
import { toProject } from '../parts/address.ts';
import { useEnded } from '../session/ended.ts';

const SwitcherQuery = graphql(`
  query Switcher {
    viewer {
      id
      organizations(first: 50) {
        nodes {
          id
          name
          projects(first: 50) {
            nodes {
              id
              name
              unreadNotificationCount
            }
          }
        }
      }
    }
  }
`);

interface SwitcherProps {
  readonly project: { readonly name: string; readonly organization: { readonly name: string } } | null;
}

/** The current organization and project; opens a list of projects that is filtered by typing. */
export function Switcher({ project }: SwitcherProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <PopoverProvider open={isOpen} setOpen={setOpen} placement="bottom-start">
      <PopoverDisclosure className="switcher">
        <small>{project?.organization.name ?? 'Portico'}</small>
        <strong>{project?.name ?? 'Choose a project'}</strong>
      </PopoverDisclosure>
      <Popover className="sheet" aria-label="Projects" gutter={4} portal>
        {isOpen && <Projects onChoose={() => setOpen(false)} />}
      </Popover>
    </PopoverProvider>
  );
}

function Projects({ onChoose }: { onChoose(): void }) {
  const { data, loading, error, refetch } = useQuery(SwitcherQuery, { notifyOnNetworkStatusChange: true });
  const failure = error && !loading ? toFailure(error) : null;
  useEnded(failure?.code);
  const [text, setText] = useState('');
  const [, navigate] = useLocation();
  const organizations = data?.viewer?.organizations.nodes ?? [];
  const found = organizations.flatMap((organization) =>
    organization.projects.nodes
      .filter(({ name }) => `${organization.name} ${name}`.toLowerCase().includes(text.toLowerCase()))
      .map((project) => ({ ...project, organization: organization.name })),
  );
  const open = (id: string) => {
    onChoose();
    navigate(toProject(id));
  };
  const combobox = useComboboxStore({ setValue: setText, open: true });
  // Enter pressed before the list has loaded opens the first match once it has.
  const [isAwaited, setAwaited] = useState(false);
  const first = found[0]?.id;
  useEffect(() => {
    if (isAwaited && first) open(first);
  });
  const onKeyDown = ({ key }: KeyboardEvent) => setAwaited(key === 'Enter' && !combobox.getState().activeId);
  return (
    <ComboboxProvider store={combobox}>
      <Combobox className="input" placeholder="Find a project" aria-label="Find a project" autoSelect autoFocus onKeyDown={onKeyDown} />
      <ComboboxList className="sheet-list" alwaysVisible aria-label="Projects">
        {found.map(({ id, name, organization, unreadNotificationCount }) => (
          <ComboboxItem
            key={id}
            value={`${organization} ${name} ${id}`}
            className="sheet-item"
            setValueOnClick={false}
            onClick={() => open(id)}
          >
            <small>{organization}</small> {name}
            {unreadNotificationCount > 0 && <span className="count">{unreadNotificationCount}</span>}
          </ComboboxItem>
        ))}
        {data && found.length === 0 && <p className="sheet-head">No project is called so.</p>}
      </ComboboxList>
      {!data && loading && <p className="sheet-head">Reading the projects …</p>}
      {failure && (
        <div className="sheet-head" role="alert">
          <p>The projects could not be read. {failure.message}</p>
          <button type="button" className="button small" onClick={() => void refetch().catch(() => {})}>
            Try again
          </button>
        </div>
      )}
    </ComboboxProvider>
  );
}
