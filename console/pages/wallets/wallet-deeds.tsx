/** Top up, debit and close a wallet. Each shows what it does before it is done. */
import { Modal, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Choice } from '../../components/choice.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { Quantity } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { addDecimals, compareDecimals, negateDecimal } from '../invoices/decimals.ts';
import { TEXTS } from './texts.ts';
import { formatWalletName, type WalletRecord } from './wallet.ts';
import styles from './wallets.module.css';

type DeedProps = { wallet: WalletRecord; onClose: () => void };

const TOP_UP_REASONS = ['FREE_CREDIT_GRANT', 'PURCHASED_CREDIT_DIRECT', 'PURCHASED_CREDIT_INVOICED'] as const;
type TopUpReason = (typeof TOP_UP_REASONS)[number];
const HINTS = {
  FREE_CREDIT_GRANT: 'freeHint',
  PURCHASED_CREDIT_DIRECT: 'directHint',
  PURCHASED_CREDIT_INVOICED: 'invoicedHint',
} as const;

export function TopUpWallet({ wallet, onClose }: DeedProps): ReactNode {
  const texts = useTexts(TEXTS);
  const [credits, setCredits] = useState('');
  const [reason, setReason] = useState<TopUpReason>('FREE_CREDIT_GRANT');
  const [expiry, setExpiry] = useState('');
  const [description, setDescription] = useState('');
  const key = useDeedKey();
  const topUp = useWalletDeed(onClose, () =>
    readData(
      api.POST('/wallets/{id}/top-up', {
        params: { path: { id: wallet.id } },
        body: {
          credits_to_add: credits,
          transaction_reason: reason,
          idempotency_key: key,
          ...(description.trim() === '' ? {} : { description: description.trim() }),
          // The chosen day is the last one on which the credits can be used.
          ...(expiry === '' ? {} : { expiry_date_utc: `${expiry}T23:59:59.999Z` }),
        },
      }),
    ),
  );
  const isUsable = credits !== '' && compareDecimals(credits, '0') > 0;
  const isInvoiced = reason === 'PURCHASED_CREDIT_INVOICED';
  return (
    <DeedDialogue title={texts.topUpTitle(formatWalletName(wallet))} deed={topUp} onClose={onClose}>
      <div className={styles.form}>
        <Choice
          label={texts.howPaid}
          value={reason}
          options={TOP_UP_REASONS.map((value) => ({ value, label: texts[`short_${value}`] }))}
          onValue={setReason}
        />
        <p className="label">{texts[HINTS[reason]]}</p>
        <NumberInput
          label={texts.creditsToAdd}
          value={credits}
          required
          data-autofocus
          error={findFieldError(topUp, 'credits_to_add')}
          onValue={setCredits}
        />
        <TextInput
          label={texts.lastDay}
          description={texts.lastDayHint}
          type="date"
          value={expiry}
          error={findFieldError(topUp, 'expiry_date_utc')}
          onChange={({ currentTarget }) => setExpiry(currentTarget.value)}
        />
        <DescriptionInput value={description} onValue={setDescription} />
        {isUsable && (
          <Effect
            wallet={wallet}
            words={isInvoiced ? texts.oncePaid : texts.afterwards}
            after={addDecimals([wallet.credit_balance, credits])}
          />
        )}
      </div>
      <FormFoot
        needs="wallet:write"
        deed={topUp}
        fields={['credits_to_add', 'expiry_date_utc']}
        action={isInvoiced ? texts.invoiceNow : texts.topUpNow}
        blocked={isUsable ? null : texts.creditsFirst}
      >
        <Button onClick={onClose}>{texts.cancel}</Button>
      </FormFoot>
    </DeedDialogue>
  );
}

export function DebitWallet({ wallet, onClose }: DeedProps): ReactNode {
  const texts = useTexts(TEXTS);
  const [credits, setCredits] = useState('');
  const [description, setDescription] = useState('');
  const key = useDeedKey();
  const debit = useWalletDeed(onClose, () =>
    readData(
      api.POST('/wallets/{id}/debit', {
        params: { path: { id: wallet.id } },
        body: {
          credits,
          transaction_reason: 'MANUAL_BALANCE_DEBIT',
          idempotency_key: key,
          ...(description.trim() === '' ? {} : { description: description.trim() }),
        },
      }),
    ),
  );
  const isUsable = credits !== '' && compareDecimals(credits, '0') > 0;
  const isTooMuch = isUsable && compareDecimals(credits, wallet.credit_balance) > 0;
  return (
    <DeedDialogue title={texts.debitTitle(formatWalletName(wallet))} deed={debit} onClose={onClose}>
      <div className={styles.form}>
        <p className="muted">{texts.debitHint}</p>
        <NumberInput
          label={texts.creditsToTake}
          value={credits}
          required
          data-autofocus
          error={findFieldError(debit, 'credits')}
          onValue={setCredits}
        />
        <DescriptionInput value={description} onValue={setDescription} />
        {isUsable && !isTooMuch && (
          <Effect
            wallet={wallet}
            words={texts.afterwards}
            after={addDecimals([wallet.credit_balance, negateDecimal(credits)])}
          />
        )}
      </div>
      <FormFoot
        needs="wallet:write"
        deed={debit}
        fields={['credits']}
        action={texts.debitNow}
        blocked={!isUsable ? texts.creditsFirst : isTooMuch ? texts.tooMuch : null}
      >
        <Button onClick={onClose}>{texts.cancel}</Button>
      </FormFoot>
    </DeedDialogue>
  );
}

export function CloseWallet({ wallet, onClose }: DeedProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const queries = useQueryClient();
  return (
    <Confirm
      needs="wallet:write"
      title={texts.closeTitle(formatWalletName(wallet))}
      action={texts.closeNow}
      typed={formatWalletName(wallet)}
      isDangerous
      onClose={onClose}
      onConfirm={async () => {
        await api.POST('/wallets/{id}/terminate', { params: { path: { id: wallet.id } } });
        await invalidate(queries, '/wallets', '/customers', '/audit-logs');
      }}
    >
      <p>{texts.closeWords(formatMoney(language, wallet.balance, wallet.currency))}</p>
      <p>{texts.closeRefused}</p>
    </Confirm>
  );
}

/** One key for one dialogue: a second click moves no credits twice. */
function useDeedKey(): string {
  const [key] = useState(() => crypto.randomUUID());
  return key;
}

function useWalletDeed<Output>(onClose: () => void, run: () => Promise<Output>) {
  const queries = useQueryClient();
  return useDeed<undefined, Output>(run, async () => {
    await invalidate(queries, '/wallets', '/customers', '/audit-logs', '/invoices');
    onClose();
  });
}

type DeedDialogueProps = {
  title: string;
  deed: { mutate: (input: undefined) => void };
  onClose: () => void;
  children: ReactNode;
};

function DeedDialogue({ title, deed, onClose, children }: DeedDialogueProps): ReactNode {
  const texts = useTexts(TEXTS);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    deed.mutate(undefined);
  };
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ 'aria-label': texts.cancel }}>
      <form onSubmit={submit}>{children}</form>
    </Modal>
  );
}

function DescriptionInput({ value, onValue }: { value: string; onValue: (value: string) => void }): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <TextInput
      label={texts.description}
      description={texts.descriptionHint}
      value={value}
      maxLength={200}
      onChange={({ currentTarget }) => onValue(currentTarget.value)}
    />
  );
}

/** The credits before and after, with the words for the moment at which they change. */
function Effect({ wallet, words, after }: { wallet: WalletRecord; words: string; after: string }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  return (
    <p className={styles.effect} role="status">
      <span className="muted">
        {texts.creditsNow(formatQuantity(language, wallet.credit_balance))}, {words}
      </span>
      <b>
        <Quantity value={after} />
      </b>
    </p>
  );
}
