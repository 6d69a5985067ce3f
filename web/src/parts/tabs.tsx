import { useEffect, useRef } from 'react';
import { Link } from 'wouter';

export interface Tab {
  readonly name: string;
  readonly title: string;
  readonly to: string;
}

/** The tabs of a page, each with its own address. If they do not all fit, the current one is scrolled into view. */
export function Tabs({ label, tabs, current }: { label: string; tabs: readonly Tab[]; current: string }) {
  const nav = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new current tab is scrolled into view.
  useEffect(() => {
    const link = nav.current?.querySelector<HTMLElement>('[aria-current]');
    if (link && nav.current) nav.current.scrollLeft = link.offsetLeft - (nav.current.clientWidth - link.clientWidth) / 2;
  }, [current]);
  return (
    <nav className="tabs" aria-label={label} ref={nav}>
      {tabs.map(({ name, title, to }) => (
        <Link key={name} href={to} aria-current={name === current ? 'page' : undefined}>
          {title}
        </Link>
      ))}
    </nav>
  );
}
