import { Redirect } from 'wouter';
import { Frame } from '../../frame/frame.tsx';
import { recallProject } from '../../frame/lastproject.ts';
import { graphql } from '../../graphql/graphql.ts';
import { toProject } from '../../parts/address.ts';
import { Query } from '../../parts/query.tsx';
import { Empty } from '../../parts/states.tsx';

const HomeQuery = graphql(`
  query Home {
    viewer {
      id
      organizations(first: 20) {
        nodes {
          id
          projects(first: 1) {
            nodes {
              id
            }
          }
        }
      }
    }
  }
`);

/** Redirects to the project that was open last, or to the first one. */
export function Home() {
  const last = recallProject();
  if (last) return <Redirect to={toProject(last)} replace />;
  return (
    <Query document={HomeQuery} variables={{}}>
      {({ viewer }) => {
        const first = viewer?.organizations.nodes.flatMap(({ projects }) => projects.nodes)[0];
        if (first) return <Redirect to={toProject(first.id)} replace />;
        return (
          <Frame projectId={null}>
            <Empty title="You are in no project yet">
              <p>An admin of an organization adds you to one. Then it opens here.</p>
            </Empty>
          </Frame>
        );
      }}
    </Query>
  );
}
