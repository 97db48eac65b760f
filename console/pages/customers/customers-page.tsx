import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function CustomersPage(): ReactNode {
  return <PageHead title="CustomersPage" />;
}
