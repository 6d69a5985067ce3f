import { useMemo } from 'react';
import { graphql } from '../../graphql/graphql.ts';
import { AllNotes, type ReadParts, readPages, useAll } from '../../parts/all.tsx';

const MembersQuery = graphql(`
  query PeopleOfSessions($id: ID!, $after: String) {
    project(id: $id) {
      id
      members(first: 100, after: $after) {
        nodes {
          user {
            id
            email
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

interface Person {
  readonly id: string;
  readonly email: string;
}

/** Whoever may see the project; owners and admins of its organization are among them. */
const readPeople = (id: string): ReadParts<Person> =>
  async function* (apollo, fetchPolicy) {
    const members = readPages(async (after) => {
      const { data } = await apollo.query({ query: MembersQuery, variables: { id, after }, fetchPolicy });
      return data?.project?.members;
    });
    for await (const part of members) yield part.map(({ user }) => user);
  };

interface PersonFilterProps {
  readonly projectId: string;
  readonly value: string | null;
  /** The e-mail address of the chosen person, if known. */
  readonly email: string | null;
  onChange(id: string | null): void;
}

/** Chooses one of the people whose sessions an admin may see. */
export function PersonFilter({ projectId, value, email, onChange }: PersonFilterProps) {
  const all = useAll(useMemo(() => readPeople(projectId), [projectId]));
  const people = all.items ?? [];
  const isKnown = !value || people.some(({ id }) => id === value);
  return (
    <>
      <select
        className="input session-filter"
        aria-label="Person"
        value={value ?? ''}
        onChange={({ target }) => onChange(target.value || null)}
      >
        <option value="">Everybody</option>
        {!isKnown && <option value={value}>{email ?? value}</option>}
        {people.map(({ id, email }) => (
          <option key={id} value={id}>
            {email}
          </option>
        ))}
      </select>
      <AllNotes all={all} name="people" />
    </>
  );
}
