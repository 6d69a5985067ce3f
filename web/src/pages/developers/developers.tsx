import { type ReactNode, Suspense, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { graphql } from '../../graphql/graphql.ts';
import { toProject } from '../../parts/address.ts';
import { Coming, lazyPage } from '../../parts/lazy.tsx';
import { Query } from '../../parts/query.tsx';
import { Loading, Problem } from '../../parts/states.tsx';
import { useDesk } from '../../session/desk.tsx';
import './developers.css';
import { type Ids, readerOf } from './examples.ts';
import { useGuideList } from './fetch.ts';
import { First } from './first.tsx';

// The Markdown parser is loaded with the first guide.
const Guide = lazyPage(() => import('./guide.tsx'));

const ReaderQuery = graphql(`
  query Reader($id: ID!) {
    project(id: $id) {
      id
      organization {
        id
      }
      instances(first: 1) {
        nodes {
          id
        }
      }
      dashboards(first: 1) {
        nodes {
          id
        }
      }
    }
  }
`);

/** The guides, with the reader's own project, address and credential in their examples. */
export default function Developers({ projectId }: { projectId: string | null }) {
  if (!projectId) return <Pages base="/developers" ids={{ organizationId: null, projectId: null, instanceId: null, dashboardId: null }} />;
  return (
    <Query document={ReaderQuery} variables={{ id: projectId }}>
      {({ project }) => (
        <Pages
          base={`${toProject(projectId)}/developers`}
          ids={{
            organizationId: project?.organization.id ?? null,
            projectId,
            instanceId: project?.instances.nodes[0]?.id ?? null,
            dashboardId: project?.dashboards.nodes[0]?.id ?? null,
          }}
        />
      )}
    </Query>
  );
}

function Pages({ base, ids }: { base: string; ids: Ids }) {
  const { session } = useDesk();
  const [path] = useLocation();
  const [isShown, setShown] = useState(false);
  const { value: guides, failure, retry } = useGuideList();
  const name = path.slice(base.length + 1);
  const reader = readerOf(ids, session, isShown);
  const what = session.kind === 'key' ? 'key' : 'session token';
  return (
    <div className="developers">
      <nav className="guides" aria-label="Guides">
        <ul>
          <Entry to={base} isCurrent={name === ''}>
            First steps
          </Entry>
          {guides?.map((guide) => (
            <Entry key={guide.name} to={`${base}/${guide.name}`} isCurrent={name === guide.name}>
              {guide.title}
            </Entry>
          ))}
        </ul>
      </nav>
      <article className="guide">
        <label className="switch">
          <input
            type="checkbox"
            role="switch"
            aria-checked={isShown}
            checked={isShown}
            onChange={({ target }) => setShown(target.checked)}
          />
          Show my {what} in the examples
        </label>
        {!ids.projectId && <p className="choose">Choose a project, at the left, to have its ids in the examples.</p>}
        {name === '' ? (
          <First base={base} reader={reader} />
        ) : guides ? (
          <Suspense fallback={<Coming />}>
            <Guide key={name} name={name} base={base} guides={guides} reader={reader} />
          </Suspense>
        ) : (
          !failure && <Loading />
        )}
        {failure && <Problem failure={failure} retry={retry} />}
      </article>
    </div>
  );
}

function Entry({ to, isCurrent, children }: { to: string; isCurrent: boolean; children: ReactNode }) {
  return (
    <li>
      <Link href={to} aria-current={isCurrent ? 'page' : undefined}>
        {children}
      </Link>
    </li>
  );
}
