/** Dialogues of an invoice that ask before something is done, and say what it does. */
import type { ReactNode } from 'react';
import { api, readData } from '../../client/client.ts';
import { Confirm } from '../../components/confirm.tsx';
import { formatMoney } from '../../figures/format.ts';
import { defineTexts, useLanguage, useTexts } from '../../texts/texts.ts';
import { isZero } from './decimals.ts';
import type { InvoiceRecord } from './invoice.ts';

export type InvoiceDialogueProps = { invoice: InvoiceRecord; onDone: () => Promise<unknown>; onClose: () => void };

export function VoidInvoice({ invoice, onDone, onClose }: InvoiceDialogueProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { id, invoice_number, currency, amount_paid, total_prepaid_credits_applied } = invoice;
  const money = (amount: string) => formatMoney(language, amount, currency);
  return (
    <Confirm
      needs="invoice:write"
      title={invoice_number ? texts.voidTitle(invoice_number) : texts.voidDraftTitle}
      action={texts.voidAction}
      isDangerous
      {...(invoice_number ? { typed: invoice_number } : {})}
      onClose={onClose}
      onConfirm={async () => {
        await readData(api.POST('/invoices/{id}/void', { params: { path: { id } }, body: null }));
        await onDone();
      }}
    >
      <p>{invoice_number ? texts.voidKeeps(invoice_number) : texts.voidDraft}</p>
      <p>{texts.voidOpens}</p>
      {!isZero(amount_paid) && <p>{texts.voidPaid(money(amount_paid))}</p>}
      {!isZero(total_prepaid_credits_applied) && <p>{texts.voidCredits(money(total_prepaid_credits_applied))}</p>}
      <p>{texts.noUndo}</p>
    </Confirm>
  );
}

export function FinalizeInvoice({ invoice, onDone, onClose }: InvoiceDialogueProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { id, total, currency, customer, customer_id } = invoice;
  return (
    <Confirm
      needs="invoice:write"
      title={texts.finalizeTitle}
      action={texts.finalizeAction}
      onClose={onClose}
      onConfirm={async () => {
        await readData(api.POST('/invoices/{id}/finalize', { params: { path: { id } } }));
        await onDone();
      }}
    >
      <p>
        <bdi>{customer?.name || customer?.external_id || customer_id}</bdi>: {formatMoney(language, total, currency)}
      </p>
      <p>{texts.finalizeDoes}</p>
      <p>{texts.finalizeCollects}</p>
    </Confirm>
  );
}

export function SendInvoice({ invoice, onDone, onClose }: InvoiceDialogueProps): ReactNode {
  const texts = useTexts(TEXTS);
  const { id, invoice_number, customer } = invoice;
  return (
    <Confirm
      needs="invoice:write"
      title={texts.sendTitle(invoice_number ?? id)}
      action={texts.sendAction}
      onClose={onClose}
      onConfirm={async () => {
        await readData(api.POST('/invoices/{id}/comms/trigger', { params: { path: { id } } }));
        await onDone();
      }}
    >
      <p>
        {texts.sendDoes} <code>invoice.communication.triggered</code>.
      </p>
      {customer?.email ? (
        <p>
          {texts.sendTo} <bdi>{customer.email}</bdi>
        </p>
      ) : (
        <p>{texts.sendNowhere}</p>
      )}
    </Confirm>
  );
}

const TEXTS = defineTexts(
  {
    voidTitle: (number: string) => `Void ${number}?`,
    voidDraftTitle: 'Void this draft?',
    voidAction: 'Void invoice',
    voidKeeps: (number: string) => `${number} keeps its number and its lines, and is void from now on.`,
    voidDraft: 'The draft keeps its lines and gets no number.',
    voidOpens: 'Its charges are open again: the subscription can bill them in another invoice.',
    voidPaid: (amount: string) => `What was paid, ${amount}, goes to the prepaid wallet of the customer.`,
    voidCredits: (amount: string) => `Prepaid credits of ${amount} return to the wallet.`,
    noUndo: 'This cannot be undone.',
    finalizeTitle: 'Finalize this invoice?',
    finalizeAction: 'Finalize invoice',
    finalizeDoes:
      'It gets its number and its due date. Taxes and prepaid credits are applied. Its lines do not change afterwards.',
    finalizeCollects: 'The amount is collected at once if the customer has a payment method.',
    sendTitle: (number: string) => `Send ${number}?`,
    sendAction: 'Send invoice',
    sendDoes: 'Endpoints of your webhooks get the invoice with its lines, and your own system sends it. The event is',
    sendTo: 'The customer’s address is',
    sendNowhere: 'The customer has no e-mail address.',
  },
  {
    de: {
      voidTitle: (number) => `${number} stornieren?`,
      voidDraftTitle: 'Diesen Entwurf stornieren?',
      voidAction: 'Rechnung stornieren',
      voidKeeps: (number) => `${number} behält Nummer und Positionen und ist ab jetzt storniert.`,
      voidDraft: 'Der Entwurf behält seine Positionen und bekommt keine Nummer.',
      voidOpens: 'Ihre Beträge sind wieder offen: Das Abonnement kann sie in einer anderen Rechnung berechnen.',
      voidPaid: (amount) => `Was bezahlt wurde, ${amount}, geht auf das Guthaben des Kunden.`,
      voidCredits: (amount) => `Guthaben von ${amount} kehrt zurück.`,
      noUndo: 'Das lässt sich nicht rückgängig machen.',
      finalizeTitle: 'Diese Rechnung ausstellen?',
      finalizeAction: 'Rechnung ausstellen',
      finalizeDoes:
        'Sie bekommt Nummer und Fälligkeit. Steuern und Guthaben werden angerechnet. Ihre Positionen ändern sich danach nicht mehr.',
      finalizeCollects: 'Hat der Kunde ein Zahlungsmittel, wird der Betrag sofort eingezogen.',
      sendTitle: (number) => `${number} senden?`,
      sendAction: 'Rechnung senden',
      sendDoes:
        'Die Endpunkte Ihrer Webhooks bekommen die Rechnung mit ihren Positionen, und Ihr eigenes System versendet sie. Das Ereignis heißt',
      sendTo: 'Die Adresse des Kunden ist',
      sendNowhere: 'Der Kunde hat keine E-Mail-Adresse.',
    },
  },
);
