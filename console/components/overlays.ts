/** Opens the dialogues above the pages of an environment. A page outside their frame has no dialogues, and gets null. */
import { createContext, useContext } from 'react';

export type Overlay = 'search' | 'keys';

export const OverlayContext = createContext<((overlay: Overlay) => void) | null>(null);

export function useOpenOverlay(): ((overlay: Overlay) => void) | null {
  return useContext(OverlayContext);
}
