import { Redirect } from 'wouter';
import { Frame } from '../../frame/frame.tsx';
import { recallProject } from '../../frame/lastproject.ts';
import { graphql } from '../../graphql/graphql.ts';
import { toProject } from '../../parts/address.ts';
import { Query } from '../../parts/query.tsx';
import { Empty } from '../../parts/states.tsx';

const HomeQuery = graphql(`
  query Home($after: String) {
    viewer {
      id
      organizations(first: 100, after: $after) {
        nodes {
          id
          projects(first: 1) {
            nodes {
              id
            }
          }
        }
        pageInfo {
          endCursor
          hasNextPage
        }
      }
    }
  }
`);

/** Redirects to the project that was open last, or to the first one. */
export function Home() {
  const last = recallProject();
  return last ? <Redirect to={toProject(last)} replace /> : <FirstProject after={null} />;
}

/** Redirects to the first project of the organizations after the cursor: one may have none that the viewer may see. */
function FirstProject({ after }: { after: string | null }) {
  return (
    <Query document={HomeQuery} variables={{ after }}>
      {({ viewer }) => {
        const organizations = viewer?.organizations;
        const first = organizations?.nodes.flatMap(({ projects }) => projects.nodes)[0];
        if (first) return <Redirect to={toProject(first.id)} replace />;
        if (organizations?.pageInfo.hasNextPage) return <FirstProject after={organizations.pageInfo.endCursor} />;
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
