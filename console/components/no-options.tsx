import type { ReactNode } from 'react';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { showApiText } from './api-text.ts';

type NoOptionsProps = { query: { readonly error: Error | null; readonly isPending: boolean }; none?: string };

/** Explains an empty list of options: the read failed, the read is running, or no option matches (`none`). */
export function NoOptions({ query: { error, isPending }, none }: NoOptionsProps): ReactNode {
  const texts = useTexts(TEXTS);
  if (error !== null) return showApiText(error.message);
  return isPending ? texts.loading : none;
}

const TEXTS = defineTexts({ loading: 'Loading' }, { de: { loading: 'Wird geladen' } });
