import { createContext, type ReactNode, useCallback, useContext, useEffect, useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';
const STORAGE_KEY = 'portico:theme';
const ThemeContext = createContext<{ theme: Theme; setTheme(theme: Theme): void }>({ theme: 'system', setTheme: () => {} });

export const useTheme = () => useContext(ThemeContext);

/** The theme: light, dark, or that of the system; stored in this browser's localStorage. */
export function ThemeProvider({ children }: { children: ReactNode }) {
  const [theme, set] = useState<Theme>(() => (localStorage.getItem(STORAGE_KEY) as Theme | null) ?? 'system');
  useEffect(() => {
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  const setTheme = useCallback((next: Theme) => {
    localStorage.setItem(STORAGE_KEY, next);
    set(next);
  }, []);
  return <ThemeContext value={{ theme, setTheme }}>{children}</ThemeContext>;
}
