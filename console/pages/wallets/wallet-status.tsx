import type { ReactNode } from 'react';
import { Chip } from '../../components/chip.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import type { WalletRecord } from './wallet.ts';

/** The state of a wallet: of an active one the state of its balance alerts. */
export function WalletStatus({ wallet }: { wallet: Pick<WalletRecord, 'wallet_status' | 'alert_state'> }): ReactNode {
  const texts = useTexts(TEXTS);
  const { wallet_status, alert_state } = wallet;
  if (wallet_status === 'closed') return <Chip>{texts.closed}</Chip>;
  if (wallet_status === 'frozen') return <Chip tone="warn">{texts.frozen}</Chip>;
  if (alert_state === 'in_alarm') return <Chip tone="bad">{texts.alarm}</Chip>;
  if (alert_state === 'warning') return <Chip tone="warn">{texts.low}</Chip>;
  return <Chip tone="ok">{texts.active}</Chip>;
}

const TEXTS = defineTexts(
  { active: 'Active', frozen: 'Frozen', closed: 'Closed', alarm: 'Balance critical', low: 'Balance low' },
  {
    de: {
      active: 'Aktiv',
      frozen: 'Eingefroren',
      closed: 'Geschlossen',
      alarm: 'Stand kritisch',
      low: 'Stand niedrig',
    },
  },
);
