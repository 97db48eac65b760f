/** Opens the dialogues that lie above every page. The frame of the pages shows them; a page outside of it has none. */
import { createContext, useContext } from 'react';

export type Overlay = 'search' | 'keys';

export const OverlayContext = createContext<((overlay: Overlay) => void) | null>(null);

export function useOpenOverlay(): ((overlay: Overlay) => void) | null {
  return useContext(OverlayContext);
}
