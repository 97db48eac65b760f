/** The state of an address that is no page of the console, or of no environment that the session may open. */
import { Link, useLocation } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Button, buttonClass } from '../components/button.tsx';
import { useOpenOverlay } from '../components/overlays.ts';
import { StateActions, StateOfPage } from '../components/states.tsx';
import { defineTexts, useTexts } from '../texts/texts.ts';

export function MissingPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const { pathname } = useLocation();
  const open = useOpenOverlay();
  return (
    <StateOfPage title={texts.title}>
      <p className="mono">{pathname}</p>
      <p className="muted">{texts.hint}</p>
      <StateActions>
        <Link to="/" className={buttonClass}>
          {texts.home}
        </Link>
        {open && <Button onClick={() => open('search')}>{texts.search}</Button>}
      </StateActions>
    </StateOfPage>
  );
}

/** An address outside the frame of the pages, which brings its own main region. */
export function MissingPageAlone(): ReactNode {
  return (
    <main>
      <MissingPage />
    </main>
  );
}

const TEXTS = defineTexts(
  {
    title: 'There is no such page',
    hint: 'Check the address, or find the record by the search.',
    home: 'Go to Home',
    search: 'Search…',
  },
  {
    de: {
      title: 'Diese Seite gibt es nicht',
      hint: 'Prüfen Sie die Adresse, oder finden Sie den Datensatz über die Suche.',
      home: 'Zur Startseite',
      search: 'Suchen…',
    },
  },
);
