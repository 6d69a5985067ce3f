import { MenuButton, MenuItem, MenuItemCheckbox, MenuItemRadio, MenuProvider, MenuSeparator, Menu as Sheet } from '@ariakit/react';
import { setShortcuts, useShortcuts } from '../parts/shortcuts.ts';
import { useDesk } from '../session/desk.tsx';
import { rememberProject } from './lastproject.ts';
import { type Theme, useTheme } from './theme.tsx';

interface PersonProps {
  readonly person: { readonly name: string; readonly email: string } | null;
  readonly role: string | null;
}

const kinds = { key: 'an API key', token: 'a token', demo: 'the demo', provider: 'the identity provider' } as const;

/** A menu: who is signed in and how, the theme, the keys, and signing out. */
export function Person({ person, role }: PersonProps) {
  const { session, signOut } = useDesk();
  const { theme, setTheme } = useTheme();
  const shortcuts = useShortcuts();
  return (
    <MenuProvider
      values={{ theme, shortcuts }}
      setValues={(values) => {
        setTheme(values.theme as Theme);
        setShortcuts(values.shortcuts === true);
      }}
    >
      <MenuButton className="button person">
        <span className="avatar" aria-hidden="true">
          {[...(person?.name || person?.email || '?')][0]}
        </span>
        <span className="person-name">{person?.name || person?.email || 'You'}</span>
      </MenuButton>
      <Sheet className="sheet" gutter={4} portal>
        <p className="sheet-head">
          {person?.email}
          <br />
          by {kinds[session.kind]}
          {role && `, ${role} of this project`}
        </p>
        <MenuSeparator />
        {(['system', 'light', 'dark'] as const).map((name) => (
          <MenuItemRadio key={name} name="theme" value={name} className="sheet-item">
            {theme === name ? '● ' : '○ '}
            {name === 'system' ? 'As the system has it' : name === 'light' ? 'Light' : 'Dark'}
          </MenuItemRadio>
        ))}
        <MenuSeparator />
        <MenuItemCheckbox name="shortcuts" className="sheet-item">
          {shortcuts ? '● ' : '○ '}
          Keys of one letter ( / j k r )
        </MenuItemCheckbox>
        <MenuSeparator />
        <MenuItem
          className="sheet-item"
          onClick={() => {
            rememberProject(null);
            signOut();
          }}
        >
          Sign out
        </MenuItem>
      </Sheet>
    </MenuProvider>
  );
}
