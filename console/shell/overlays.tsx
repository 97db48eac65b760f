/** The dialogues above every page of an environment: the search and the list of keys. A key or a button opens them. */
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react';
import { type Overlay, OverlayContext } from '../components/overlays.ts';
import { isListKey, isListKeyOn, isSearchKey } from './keys.ts';

const SearchPalette = lazy(async () => ({
  default: (await import('../pages/search/search-palette.tsx')).SearchPalette,
}));
const KeysDialogue = lazy(async () => ({ default: (await import('./keys-dialogue.tsx')).KeysDialogue }));

export function Overlays({ children }: { children: ReactNode }): ReactNode {
  const [shown, setShown] = useState<Overlay | null>(null);
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      const overlay = isSearchKey(event) ? 'search' : isListKey(event) && isListKeyOn() ? 'keys' : null;
      if (overlay === null) return;
      event.preventDefault();
      setShown(overlay);
    };
    addEventListener('keydown', open);
    return () => removeEventListener('keydown', open);
  }, []);
  const close = () => setShown(null);
  return (
    <OverlayContext value={setShown}>
      {children}
      <Suspense>
        {shown === 'search' && <SearchPalette onClose={close} />}
        {shown === 'keys' && <KeysDialogue onClose={close} />}
      </Suspense>
    </OverlayContext>
  );
}
