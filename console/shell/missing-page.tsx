/** The page of an address that the console does not have, or whose environment the session may not open. */
import { Link, useLocation } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Button, buttonClass } from '../components/button.tsx';
import { useOpenOverlay } from '../components/overlays.ts';
import { StateActions, StateOfPage } from '../components/states.tsx';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { LonePage } from './lone-page.tsx';

export function MissingPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const { pathname } = useLocation();
  const open = useOpenOverlay();
  return (
    <StateOfPage title={texts.title}>
      <p className="mono">
        <bdi>{pathname}</bdi>
      </p>
      <p className="muted">{open ? texts.hint : texts.hintAlone}</p>
      <StateActions>
        <Link to="/" className={buttonClass}>
          {texts.home}
        </Link>
        {open && <Button onClick={() => open('search')}>{texts.search}</Button>}
      </StateActions>
    </StateOfPage>
  );
}

/** The missing page outside the frame of an environment. */
export function MissingPageAlone(): ReactNode {
  return (
    <LonePage>
      <MissingPage />
    </LonePage>
  );
}

const TEXTS = defineTexts(
  {
    title: 'There is no such page',
    hint: 'Check the address, or search for the record.',
    hintAlone: 'Check the address. The environment may have been removed, or belong to another company.',
    home: 'Go to Home',
    search: 'Search…',
  },
  {
    de: {
      title: 'Diese Seite gibt es nicht',
      hint: 'Prüfen Sie die Adresse, oder suchen Sie den Datensatz.',
      hintAlone:
        'Prüfen Sie die Adresse. Die Umgebung wurde vielleicht entfernt oder gehört einem anderen Unternehmen.',
      home: 'Zur Startseite',
      search: 'Suchen…',
    },
  },
);
