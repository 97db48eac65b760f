/** Effects of a planned correction: usage of meters, lines of drafts and of the next invoice, before → after. */
import type { ReactNode } from 'react';
import type { paths } from '../../client/openapi.d.ts';
import { showApiText } from '../../components/api-text.ts';
import { Loading } from '../../components/states.tsx';
import { Money, Quantity } from '../../figures/money.tsx';
import { useTexts } from '../../texts/texts.ts';
import { EVENT_TEXTS } from './event-texts.ts';
import styles from './events.module.css';

type EffectsAnswer = paths['/events/{id}/void/preview']['post']['responses'][200]['content']['application/json'];

type EffectsProps = { effects: EffectsAnswer | undefined; error: Error | null; isPending: boolean };

export function Effects({ effects, error, isPending }: EffectsProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  return (
    <section className={styles.effects} aria-label={texts.effects} aria-live="polite" aria-busy={isPending}>
      <h3>{texts.effects}</h3>
      {error ? (
        <p className={styles.fault} role="alert">
          {showApiText(error.message)}
        </p>
      ) : effects === undefined ? (
        <Loading rows={2} />
      ) : effects.meters.length === 0 && effects.invoices.length === 0 ? (
        <p className="muted">{texts.noEffect}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">{texts.changes}</th>
              <th scope="col">{texts.before}</th>
              <th scope="col">{texts.after}</th>
            </tr>
          </thead>
          <tbody>
            {effects.meters.map((meter) => (
              <tr key={`${meter.meter_id}${meter.external_customer_id}${meter.period_start}`}>
                <td>
                  <bdi>{meter.name}</bdi>, <bdi className="muted">{meter.external_customer_id}</bdi>
                </td>
                <td>
                  <Quantity value={meter.before} />
                </td>
                <td>
                  <Quantity value={meter.after} />
                </td>
              </tr>
            ))}
            {effects.invoices.flatMap((invoice) => [
              ...invoice.charges.map((charge, at) => (
                <tr key={`${invoice.subscription_id}${invoice.invoice_id}${at}`}>
                  <td>
                    <bdi>{charge.display_name ?? charge.plan_name ?? texts.line}</bdi>
                    {charge.is_correction && <span className="muted"> {texts.isCorrection}</span>}
                  </td>
                  <td>
                    <Money amount={charge.before} currency={invoice.currency} />
                  </td>
                  <td>
                    <Money amount={charge.after} currency={invoice.currency} />
                  </td>
                </tr>
              )),
              <tr key={`${invoice.subscription_id}${invoice.invoice_id}total`}>
                <td>{invoice.invoice_id === null ? texts.nextInvoice : texts.openDraft}</td>
                <td>
                  <Money amount={invoice.total_before} currency={invoice.currency} />
                </td>
                <td>
                  <Money amount={invoice.total_after} currency={invoice.currency} />
                </td>
              </tr>,
            ])}
          </tbody>
        </table>
      )}
    </section>
  );
}
