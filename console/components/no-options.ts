import type { ReactNode } from 'react';
import { showApiText } from './api-text.ts';

type OptionsQuery = { readonly error: Error | null; readonly isPending: boolean };

/** Explains why a select has no options: they could not be read, they are being read, or, with the words `none`, there are none. */
export function explainNoOptions({ error, isPending }: OptionsQuery, none: string | null): ReactNode {
  if (error !== null) return showApiText(error.message);
  return isPending ? '…' : none;
}
