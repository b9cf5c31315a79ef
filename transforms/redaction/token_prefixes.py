"""Tokens that begin with a name of their own, by that beginning: data for two rules of redaction."""

# From the catalogue of MongoDB Kingfisher 1.5 (488 rules, Apache-2.0, kept up by its makers) and vendors'
# pages, without what is public by design, as publishable keys and ids of clients are (decisions/0044).
PREFIXES = (
    # Code, packages, builds
    "AIK_CI_ AIK_SECRET_ ATATT3xFf ATCTT3xFf BBDC- CCIPAT_ CCIPRJ_ CLOJARS_ HRKU- PMAK- PMAT- SWMKEY-1- "
    "SWMTKN-1- bkaa_ bkaj_ bkar_ bkct_ bkpat_ bkps_ bkpt_ bkua_ csa_ dckr_oat_ dckr_pat_ glsoat- ico- "
    "mergify_application_key_ packagist_acs_ packagist_ort_ packagist_out_ pul- rdme_ rootly_ rubygems_ "
    "sgp_ sntryu_ sqa_ sqp_ squ_ "
    # Clouds, hosts, databases
    "AstraCS: CCDB1_ FlyV1 STS. apify_api_ ddo_ ddp_ dt0c01. dt0s01. essu_ eyJrIjoi fm2_ napi_ nfp_ "
    "mdb_sa_sk_ os_v2_ pnu_ polar_at_ polar_oat_ polar_pat_ pscale_oauth_ pscale_pw_ pscale_tkn_ rnd_ rpa_ "
    "sb_secret_ tk-us- ucat_ unkey_ v1.0- vca_ vci_ vck_ vcp_ vcr_ vtwn_ zpka_ "
    # Networks, watching, flags
    "NRAK- NRII- NRIQ- dnkey- dvc_server_ glc_ glsa_ hcaik_ hcalk_ hcamk_ phx_ tskey-api- tskey-auth- "
    "tskey-client- tskey-scim- tskey-webhook- "
    # Models and search
    "cog_ csk- fw_ jina_ llx- lsv2_pt_ lsv2_sk_ nvapi- pcsk_ sk-api- sk-lf- sk_car_ tgp_v1_ tvly- wandb_v1_ "
    # Money, post, people, things
    "$aact_ CFPAT- FLWSECK- FLWSECK_TEST- SSWS api_live. api_live_ca. api_live_us. duffel_live_ "
    "duffel_test_ figd_ figdr_ fio-u- lip_ mercury_production_ mlsn. nyk_ ops_eyJ p8e- pdl_live_apikey_ "
    "pdl_sdbx_apikey_ persona_production_ pina_ prf_ ramp_sec_ samsara_api_ shippo_live_ shippo_test_ "
    "sm_aat_ sm_pat_ sm_sat_ sq0atp- tfp_ tss_ waka_ xkeysib- xnd_production_ xoxc- xoxd- xoxe- xoxe.xox"
)

# Too short to tell by themselves: base64 has them by chance. They begin a word, and no word follows.
SHORT_PREFIXES = "ABSK AKID AQVN BSA EAA EZAK EZTK LTAI cmVmdGtu cio oy2 sl. y0_ y1_ y2_ y3_"
