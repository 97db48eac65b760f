import type { ReactNode } from 'react';
import { Chip } from '../../components/chip.tsx';
import type { Tone } from '../../components/tone.ts';
import { useTexts } from '../../texts/texts.ts';
import { deriveState, type InvoiceRecord, type InvoiceState } from './invoice.ts';
import { useNow } from './now.ts';
import { TEXTS } from './texts.ts';

const TONES: Record<InvoiceState['kind'], Tone> = {
  draft: 'plain',
  void: 'plain',
  skipped: 'plain',
  refunded: 'plain',
  failed: 'bad',
  overdue: 'bad',
  due: 'warn',
  open: 'warn',
  processing: 'info',
  overpaid: 'info',
  paid: 'ok',
};

const NAMES = {
  draft: 'stateDraft',
  void: 'stateVoid',
  skipped: 'stateSkipped',
  refunded: 'stateRefunded',
  failed: 'stateFailed',
  open: 'stateOpen',
  processing: 'stateProcessing',
  overpaid: 'stateOverpaid',
  paid: 'statePaid',
} as const;

/** The state of an invoice in words: "Due in 9 days". */
export function InvoiceStatus({
  invoice,
}: {
  invoice: Pick<InvoiceRecord, 'invoice_status' | 'payment_status' | 'amount_remaining' | 'due_date'>;
}): ReactNode {
  const texts = useTexts(TEXTS);
  const state = deriveState(invoice, useNow());
  const words =
    state.kind === 'due'
      ? texts.stateDue(state.days)
      : state.kind === 'overdue'
        ? texts.stateOverdue(state.days)
        : texts[NAMES[state.kind]];
  return <Chip tone={TONES[state.kind]}>{words}</Chip>;
}
