/** The frame of all pages of an environment: its band, the navigation, the header with the path and the search, and the page. */
import { Outlet, useLocation, useParams, useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';
import { useSession } from '../client/session.ts';
import { ZoneContext } from '../figures/when.tsx';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { EnvironmentBand } from './environment-band.tsx';
import { Header } from './header.tsx';
import { Navigation } from './navigation.tsx';
import { Overlays } from './overlays.tsx';
import styles from './shell.module.css';

const BROWSER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function Shell(): ReactNode {
  const texts = useTexts(TEXTS);
  const session = useSession();
  const { environment_id } = useParams({ from: '/env/$environment_id' });
  const { zone } = useSearch({ from: '/env/$environment_id' });
  const { pathname } = useLocation();
  const environment = session.environments.find(({ id }) => id === environment_id)!;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    // A new page is announced by moving the focus to it; the first one keeps the focus of the browser.
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [pathname]);
  return (
    <ZoneContext value={zone === 'browser' ? BROWSER_ZONE : 'UTC'}>
      <Overlays>
        <div className={styles.screen} data-environment={environment.test_clock_id ? 'clock' : environment.type}>
          <a href="#page" className={styles.skip}>
            {texts.skip}
          </a>
          <EnvironmentBand environment={environment} />
          <Navigation environment={environment} environments={session.environments} />
          <div className={styles.content}>
            <Header />
            <main id="page" ref={main} tabIndex={-1} className={styles.main}>
              <Outlet />
            </main>
          </div>
        </div>
      </Overlays>
    </ZoneContext>
  );
}

const TEXTS = defineTexts({ skip: 'Skip to the page' }, { de: { skip: 'Zum Inhalt springen' } });
