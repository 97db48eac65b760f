import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function MetersPage(): ReactNode {
  return <PageHead title="MetersPage" />;
}
