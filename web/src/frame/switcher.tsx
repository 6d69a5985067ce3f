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
import { toProject } from '../parts/address.ts';
import { AllNotes, type ReadParts, readPages, useAll } from '../parts/all.tsx';
import { withholdComposition } from '../parts/composition.ts';
import { formatNumber } from '../parts/format.ts';

const SwitcherProjects = graphql(`
  fragment SwitcherProjects on ProjectConnection {
    nodes {
      id
      name
      unreadNotificationCount
    }
    pageInfo {
      endCursor
      hasNextPage
    }
  }
`);

const SwitcherQuery = graphql(
  `
    query Switcher($after: String) {
      viewer {
        id
        organizations(first: 50, after: $after) {
          nodes {
            id
            name
            projects(first: 50) {
              ...SwitcherProjects
            }
          }
          pageInfo {
            endCursor
            hasNextPage
          }
        }
      }
    }
  `,
  [SwitcherProjects],
);

const SwitcherRestQuery = graphql(
  `
    query SwitcherRest($id: ID!, $after: String) {
      organization(id: $id) {
        id
        projects(first: 100, after: $after) {
          ...SwitcherProjects
        }
      }
    }
  `,
  [SwitcherProjects],
);

interface ListedProject {
  readonly id: string;
  readonly name: string;
  readonly unreadNotificationCount: number;
  readonly organization: string;
}

/** All projects of all organizations, with the names of both. */
const readProjects: ReadParts<ListedProject> = async function* (apollo, fetchPolicy) {
  const organizations = readPages(async (after) => {
    const { data } = await apollo.query({ query: SwitcherQuery, variables: { after }, fetchPolicy });
    return data?.viewer?.organizations;
  });
  for await (const page of organizations) {
    for (const { id, name: organization, projects: first } of page) {
      const projects = readPages(async (after) => {
        if (after === null) return first;
        const { data } = await apollo.query({ query: SwitcherRestQuery, variables: { id, after }, fetchPolicy });
        return data?.organization?.projects;
      });
      for await (const part of projects) yield part.map((project) => ({ ...project, organization }));
    }
  }
};

/** How many projects are shown at once: the others are found by typing. */
const MAX_SHOWN = 500;

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
  const all = useAll(readProjects);
  const [text, setText] = useState('');
  const [, navigate] = useLocation();
  const isFound = ({ organization, name }: ListedProject) => `${organization} ${name}`.toLowerCase().includes(text.toLowerCase());
  const found = all.items?.filter(isFound) ?? [];
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
      <Combobox
        className="input"
        placeholder="Find a project"
        aria-label="Find a project"
        autoSelect
        autoFocus
        onKeyDownCapture={withholdComposition}
        onKeyDown={onKeyDown}
      />
      <ComboboxList className="sheet-list" alwaysVisible aria-label="Projects">
        {found.slice(0, MAX_SHOWN).map(({ id, name, organization, unreadNotificationCount }) => (
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
        {!all.isReading && !all.failure && found.length === 0 && <p className="sheet-head">No project is called so.</p>}
        {found.length > MAX_SHOWN && (
          <p className="sheet-head">And {formatNumber(found.length - MAX_SHOWN)} more: type a part of the name.</p>
        )}
      </ComboboxList>
      {all.isReading && !all.items && <p className="sheet-head">Reading the projects …</p>}
      <AllNotes all={all} name="projects" />
    </ComboboxProvider>
  );
}
