/** Why the balance after usage is this number: balance, usage of the current periods, unpaid invoices. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { buttonClass } from '../../components/button.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Knot, type SumRow, Thread, WrittenSum } from '../../components/thread.tsx';
import { formatMoney } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { isZero, negateDecimal } from '../invoices/decimals.ts';
import { TEXTS } from './texts.ts';
import { formatWalletName, type LiveWallet } from './wallet.ts';

export function BalanceThread({ wallet, onClose }: { wallet: LiveWallet; onClose: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { currency, balance, current_period_usage, unpaid_invoices_amount, real_time_balance, customer_id } = wallet;
  const money = (amount: string | null) => (amount === null ? '–' : formatMoney(language, amount, null));
  const taken = (amount: string | null) => money(amount === null || isZero(amount) ? amount : negateDecimal(amount));
  const types = wallet.config?.allowed_price_types ?? ['ALL'];
  const rows: SumRow[] = [
    { key: 'balance', what: texts.balanceNow, amount: money(balance) },
    { key: 'usage', what: texts.used, amount: taken(current_period_usage) },
    { key: 'unpaid', what: texts.unpaid, amount: taken(unpaid_invoices_amount) },
  ];
  const link = (text: string, to: 'customers' | 'invoices') => (
    <Link
      from="/env/$environment_id"
      to={to === 'customers' ? '/env/$environment_id/customers/$customer_id' : '/env/$environment_id/invoices'}
      params={(({ environment_id }: { environment_id: string }) => ({ environment_id, customer_id })) as never}
      search={
        (({ zone }: { zone?: string }) => ({
          zone,
          ...(to === 'invoices' ? { customer: customer_id, show: 'outstanding' } : {}),
        })) as never
      }
      className={buttonClass}
    >
      {text}
    </Link>
  );
  return (
    <SideSheet
      title={texts.why(money(real_time_balance))}
      subtitle={<bdi>{formatWalletName(wallet)}</bdi>}
      onClose={onClose}
      footer={
        <>
          {link(texts.toCustomer, 'customers')}
          {link(texts.toInvoices, 'invoices')}
        </>
      }
    >
      <Thread>
        <Knot title={texts.after} value={<Money amount={real_time_balance} currency={currency} />} isFilled>
          {texts.afterHint}
        </Knot>
        <Knot title={texts.sum}>
          <WrittenSum rows={rows} total={{ key: 'total', what: texts.after, amount: money(real_time_balance) }} />
        </Knot>
        <Knot title={texts.pays} isFilled>
          {types.map((type) => texts[type]).join(', ')}. {texts.paysHint}
        </Knot>
      </Thread>
    </SideSheet>
  );
}
