/** Home. An environment without an invoice is on its way to the first one, and shows that way instead. */
import { lazy, type ReactNode, Suspense } from 'react';
import { useGet } from '../../client/queries.ts';
import { can, useSession } from '../../client/session.ts';
import { Loading } from '../../components/states.tsx';
import { Overview } from './overview.tsx';

const FirstBillPage = lazy(async () => ({
  default: (await import('../first-bill/first-bill-page.tsx')).FirstBillPage,
}));

export function HomePage(): ReactNode {
  const session = useSession();
  const mayRead = can(session, 'invoice', 'read');
  const invoices = useGet('/invoices', { query: { limit: 1, skip_line_items: true } }, { enabled: mayRead });
  if (mayRead && invoices.isPending) return <Loading />;
  if (invoices.data?.items?.length === 0)
    return (
      <Suspense fallback={<Loading rows={8} />}>
        <FirstBillPage />
      </Suspense>
    );
  return <Overview />;
}
