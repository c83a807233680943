// What tier 1 says of tenants, with every value of another account for every filter.
import './tenancy.test.ts'
