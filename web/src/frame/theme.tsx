import { createContext, type ReactNode, useCallback, useContext, useEffect, useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';
const NAME = 'portico:theme';
const ThemeContext = createContext<{ theme: Theme; setTheme(theme: Theme): void }>({ theme: 'system', setTheme: () => {} });

export const useTheme = () => useContext(ThemeContext);

/** Light, dark, or as the system has it; kept in this browser. */
export function ThemeProvider({ children }: { children: ReactNode }) {
  const [theme, set] = useState<Theme>(() => (localStorage.getItem(NAME) as Theme | null) ?? 'system');
  useEffect(() => {
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  const setTheme = useCallback((next: Theme) => {
    localStorage.setItem(NAME, next);
    set(next);
  }, []);
  return <ThemeContext value={{ theme, setTheme }}>{children}</ThemeContext>;
}
