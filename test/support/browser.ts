import { existsSync } from 'node:fs';
import { expect } from 'vitest';

/** The path of the browser: Debian's chromium without windows, or what CHROMIUM names. */
export function findBrowser(): string {
  const path = process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell';
  expect(existsSync(path), `${path}: apt-get install chromium-headless-shell`).toBe(true);
  return path;
}
